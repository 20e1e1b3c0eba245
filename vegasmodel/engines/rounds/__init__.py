"""The event-driven simulator: trains of packets through a network of queues."""

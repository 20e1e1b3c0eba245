"""Fluid model: laws, queues, the integrator and its periodic steady state."""

"""Packet-level evidence: the ns-2 driver, readers of traces, reference runs."""

"""Readers of foreign traces, one format a file; each has ``read(source) -> Trace``."""

"""The records of Podlesny and Williamson, on NewReno and Vegas with Rate-Delay (RD) services."""

from paper_checks.podlesny import changes, equations, experiments, traffic

RECORDS = (*equations.RECORDS, *experiments.RECORDS, *traffic.RECORDS, *changes.RECORDS)

"""``podlesny``: NewReno and Vegas with RD network services.  Equations, then experiments."""

from paper_checks.podlesny import changes, equations, experiments, traffic

RECORDS = (*equations.RECORDS, *experiments.RECORDS, *traffic.RECORDS, *changes.RECORDS)

"""``podlesny``: NewReno and Vegas with RD network services.  Equations, then experiments."""

from paper_checks.podlesny import equations, experiments

RECORDS = (*equations.RECORDS, *experiments.RECORDS)

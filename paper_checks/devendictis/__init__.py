"""``devendictis``: one Vegas and one Reno source.  Equations, then validation."""

from paper_checks.devendictis import equations, validation

RECORDS = (*equations.RECORDS, *validation.RECORDS)

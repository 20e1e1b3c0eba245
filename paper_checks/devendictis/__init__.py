"""``devendictis``: one Vegas and one Reno source.  Equations, validation, then section 2."""

from paper_checks.devendictis import equations, senders, validation

RECORDS = (*equations.RECORDS, *validation.RECORDS, *senders.RECORDS)

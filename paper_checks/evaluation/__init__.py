"""``evaluation``: Reno, SACK and Vegas with ns-2.  Tables, then figures and claims."""

from paper_checks.evaluation import competition, figures, tables

RECORDS = (*tables.RECORDS, *figures.RECORDS, *competition.RECORDS)

"""``evaluation``: Reno, SACK and Vegas with ns-2.  Tables, then figures, then claims."""

from paper_checks.evaluation import competition, figures, tables, text

RECORDS = (*tables.RECORDS, *figures.RECORDS, *competition.RECORDS, *text.RECORDS)

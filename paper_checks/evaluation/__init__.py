"""The records of the paper with the key ``evaluation``: Reno, SACK and Vegas compared in ns-2."""

from paper_checks.evaluation import competition, figures, tables, text

RECORDS = (*tables.RECORDS, *figures.RECORDS, *competition.RECORDS, *text.RECORDS)

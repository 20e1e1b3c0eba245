"""``tsang``: fairness of Vegas by simulation.  Text and equations, then tables."""

from paper_checks.tsang import table3, table4, text

RECORDS = (*text.RECORDS, *table3.RECORDS, *table4.RECORDS)

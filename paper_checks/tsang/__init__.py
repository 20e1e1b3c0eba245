"""``tsang``: a simulation of the fairness of Vegas.  Text and equations, then tables."""

from paper_checks.tsang import claims, mixes, table3, table4, text

RECORDS = (
    *text.RECORDS,
    *table3.RECORDS,
    *table4.RECORDS,
    *mixes.RECORDS,
    *claims.RECORDS,
)

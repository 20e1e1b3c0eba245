"""The records of Tsang and Chang, on the fairness of Vegas connections with different delays."""

from paper_checks.tsang import claims, mixes, table3, table4, text

RECORDS = (
    *text.RECORDS,
    *table3.RECORDS,
    *table4.RECORDS,
    *mixes.RECORDS,
    *claims.RECORDS,
)

"""The records of De Vendictis and Baiocchi (2002), who model one Vegas beside one Reno source."""

from paper_checks.devendictis import equations, hypotheses, senders, small_buffers, validation

RECORDS = (
    *equations.RECORDS,
    *small_buffers.RECORDS,
    *hypotheses.RECORDS,
    *validation.RECORDS,
    *senders.RECORDS,
)

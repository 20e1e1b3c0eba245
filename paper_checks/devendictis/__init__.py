"""``devendictis``: one Vegas and one Reno source.  Equations, hypotheses, section 4, section 2."""

from paper_checks.devendictis import equations, hypotheses, senders, small_buffers, validation

RECORDS = (
    *equations.RECORDS,
    *small_buffers.RECORDS,
    *hypotheses.RECORDS,
    *validation.RECORDS,
    *senders.RECORDS,
)

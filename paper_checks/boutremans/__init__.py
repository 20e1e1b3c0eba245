"""``boutremans``: the steady state of Vegas and who came first.  Theory, then figures."""

from paper_checks.boutremans import bands, figures, simulations, theory

RECORDS = (*theory.RECORDS, *bands.RECORDS, *figures.RECORDS, *simulations.RECORDS)

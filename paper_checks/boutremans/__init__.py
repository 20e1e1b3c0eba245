"""The records of Boutremans and Le Boudec (2000), on the fairness of Vegas flows on one link."""

from paper_checks.boutremans import bands, figures, simulations, theory

RECORDS = (*theory.RECORDS, *bands.RECORDS, *figures.RECORDS, *simulations.RECORDS)

"""TCP Vegas: a window that keeps between alpha and beta packets of its own in the queue."""

from vegasmodel.laws.law import Law, Source


# boutremans (1): dW/dt = 1/RTT where Diff < alpha, -1/RTT where Diff > beta, else 0.
# Diff = W (RTT - baseRTT)/RTT; Linux divides by baseRTT instead.
def drift(f: Source) -> float:
    """One packet a round trip, up or down."""
    if f.backlog < f.alpha:
        return 1.0
    return -1.0 if f.backlog > f.beta else 0.0


LAW = Law(
    "vegas",
    drift,
    0.75,
    per_ack="thresholds",
    once_a_round=True,
    delay_based=True,
    overdue_checks=True,  # Brakmo and Peterson 1995, 3.1
    slow_start="gamma",
    recovery="hole by hole",
)

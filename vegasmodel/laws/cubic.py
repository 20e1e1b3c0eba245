"""TCP CUBIC: the window is a cubic of the time since the last loss (RFC 9438)."""

from vegasmodel.laws.law import Law, Source

C = 0.4  # packets a cubic second
BETA = 0.7  # factor on the window at a loss
ALPHA = 3.0 * (1.0 - BETA) / (1.0 + BETA)  # of an AIMD(alpha, beta) that is fair to Reno


# RFC 9438 4.7, fast convergence: a loss below the last W_max sets W_max = W (1 + beta)/2.
# The window itself still begins at beta W.  A memory below 0 says that this happened.
def remember(f: Source) -> float:
    """W_max."""
    return f.window if f.window >= abs(f.memory) else -0.5 * (1.0 + BETA) * f.window


# RFC 9438 (1), (2): W(t) = C (t - K)^3 + W_max, K = cbrt((W_max - W_epoch)/C), one round trip
# ahead (4.2); 4.3: W_est = W_epoch + alpha per round trip, 1 from the window at the loss on
def drift(f: Source) -> float:
    """As far as one round trip brings the window to the cubic, or to Reno's where that is above.

    Recovery takes the first round trip after a loss, and time counts from its end.
    """
    if f.memory == 0.0:  # slow start has ended without a loss
        return 1.0
    highest = abs(f.memory)
    before = highest if f.memory > 0.0 else 2.0 * highest / (1.0 + BETA)
    begin = BETA * before
    k: float = ((highest - begin) / C) ** (1.0 / 3.0)
    ahead = max(f.elapsed, f.rtt)  # a round trip after the time that counts
    cubic: float = C * (ahead - k) ** 3 + highest
    rounds = ahead / f.rtt
    climb = (before - begin) / ALPHA
    friendly = begin + ALPHA * rounds if rounds < climb else before + rounds - climb
    target = min(max(cubic, friendly), 1.5 * f.window)
    return max(target - f.window, 0.0)


def left_out(stack: str, decrease: float) -> str:
    """What is not here of the CUBIC that runs in a stack."""
    if decrease != BETA:
        return f"CUBIC's K and its Reno-friendly region are those of a factor of {BETA:g}"
    return "CUBIC's slow start in Linux ends by HyStart, too" if stack == "linux" else ""


LAW = Law("cubic", drift, BETA, remember=remember, is_cubic=True, left_out=left_out)

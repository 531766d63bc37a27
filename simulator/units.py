"""Named multiples and the only place where numbers are written for people.

Inside rollcast everything is SI: seconds, bytes, tokens, FLOP. These constants exist so
that no power of ten or two is typed twice.
"""

KILO = 1e3
MEGA = 1e6
GIGA = 1e9
TERA = 1e12
MICRO = 1e-6
MILLI = 1e-3
GIB = 2**30


def format_gib(num_bytes: float) -> str:
    """Bytes as GiB with one decimal.

    >>> format_gib(3 * 2**30)
    '3.0 GiB'
    """
    return f"{num_bytes / GIB:.1f} GiB"


def format_seconds(seconds: float) -> str:
    """Seconds with a precision that fits their size.

    >>> format_seconds(0.0042), format_seconds(3.14159), format_seconds(185.3)
    ('4.2 ms', '3.14 s', '185.3 s')
    """
    if seconds < 1.0:
        return f"{seconds * KILO:.1f} ms"
    return f"{seconds:.2f} s" if seconds < 100.0 else f"{seconds:.1f} s"

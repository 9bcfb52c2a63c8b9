"""What of a Spark error is worth telling: the driver prints hundreds of lines, few of which say why."""

from __future__ import annotations


def crash_reason(error: Exception) -> str:
    """The lines of an error that tell something, of the hundreds Spark prints."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith("at ")]
    return " | ".join(telling[:6])[:1000] or type(error).__name__

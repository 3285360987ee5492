"""Numbers of bytes in words."""

_UNITS = ("kB", "MB", "GB", "TB")


def in_bytes(count: int) -> str:
    """Returns `2 bytes`, `1.5 kB`, `3.0 GB`."""
    if count < 1000:
        return "1 byte" if count == 1 else "%d bytes" % count
    size = float(count)
    for unit in _UNITS:
        size /= 1000
        # A value that would be shown as 1000.0 takes the next unit.
        if size < 999.95 or unit == _UNITS[-1]:
            break
    return "%.1f %s" % (size, unit)

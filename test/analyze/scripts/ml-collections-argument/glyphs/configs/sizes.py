def small_width():
    return 64


def large_width():
    return 512

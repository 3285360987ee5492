from glyphs.configs import base, sizes


def get_config(words):
    size, data = words.split(",")
    config = base.for_data(base.base(), data)
    config.width = getattr(sizes, f"{size}_width")()
    return config

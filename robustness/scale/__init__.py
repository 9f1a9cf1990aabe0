"""What studies of a million items and sweeps of a thousand models cost, from small runs of every part."""

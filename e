plait: rank 0: digits.csv: No such file or directory

module datacollect/timestamp_load

go 1.22

module sheaf.test/shutdown

go 1.26.0

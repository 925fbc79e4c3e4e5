module sheaf.example/worker

go 1.21

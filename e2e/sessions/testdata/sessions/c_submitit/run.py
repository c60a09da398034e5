import submitit

executor = submitit.AutoExecutor(folder="log")
executor.update_parameters(timeout_min=5, cpus_per_task=1, mem_gb=0.2, slurm_array_parallelism=2, slurm_partition="main")


def add(a, b):
    return a + b


def rank():
    job = submitit.JobEnvironment()
    return (job.global_rank, job.num_tasks, job.num_nodes)


def bad():
    raise ValueError("on purpose")


print("one", executor.submit(add, 5, 7).result())
print("array", [job.result() for job in executor.map_array(add, [1, 2, 3, 4], [10, 20, 30, 40])])
executor.update_parameters(nodes=2, tasks_per_node=2)
print("ranks", sorted(executor.submit(rank).results()))
executor.update_parameters(nodes=1, tasks_per_node=1)
job = executor.submit(bad)
try:
    job.result()
except Exception as error:
    print("failed", type(error).__name__, "on purpose" in str(error))

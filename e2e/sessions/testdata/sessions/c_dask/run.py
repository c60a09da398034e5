from dask.distributed import Client
from dask_jobqueue import SLURMCluster

cluster = SLURMCluster(queue="main", cores=1, processes=1, memory="300MB", walltime="00:05:00", interface="lo",
                       log_directory="log", local_directory="loc")
cluster.scale(jobs=3)
client = Client(cluster)
client.wait_for_workers(3, timeout=60)
print(sum(client.gather(client.map(lambda x: x * x, range(20)))))
print(len(client.scheduler_info()["workers"]))
client.close()
cluster.close()

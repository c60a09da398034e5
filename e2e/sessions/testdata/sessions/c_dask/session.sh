# dask-jobqueue, unmodified: workers are jobs.
# compare: stdout
# needs: snakemake
python3 run.py 2>/dev/null; settle

# Snakemake with its Slurm executor, unmodified: a workflow of seven jobs.
# compare: stdout
# needs: snakemake
# cluster: {etc: true, accounting: true, conf: {JobAcctGatherType: jobacct_gather/linux}}
export HOME=$PWD XDG_CACHE_HOME=$PWD/.cache
snakemake --executor slurm --jobs 4 --default-resources slurm_account=acct slurm_partition=main runtime=5 mem_mb=200 \
  --slurm-init-seconds-before-status-checks 2 --latency-wait 10 --quiet all > snake.log 2>&1; echo "rc $?"
cat result.txt; rm -rf .cache .snakemake snake.log

# submitit, unmodified: a function, an array, a job that fails.
# compare: stdout
# needs: snakemake
# cluster: {accounting: true, conf: {JobAcctGatherType: jobacct_gather/linux}}
python3 run.py

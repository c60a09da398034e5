# Input, signals, labels, --wait and --multi-prog over several nodes.
sbatch job.sh; settle; cat out.txt

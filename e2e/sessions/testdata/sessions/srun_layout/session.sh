# block, cyclic, plane on nodes of different sizes, and how many tasks where.
# unordered: out.txt
sbatch -N3 -n7 job.sh; settle; sort out.txt; sbatch -N2 -n4 -c2 job.sh; settle; sort out.txt

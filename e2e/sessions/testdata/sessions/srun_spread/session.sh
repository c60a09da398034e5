# Which of the job's nodes a step gets: the first with room, named, relative; one that does not fit.
# unordered: out.txt
sbatch job.sh; settle; sort out.txt

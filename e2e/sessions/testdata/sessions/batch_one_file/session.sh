# Standard output and standard error in one file.
sbatch -o both -e both --wrap 'echo o1; echo e1 >&2; echo o2; echo e2 >&2'
sbatch -o x%j -e x1002 --wrap 'echo o1; echo e1 >&2; echo o2'
sbatch -e slurm-%j.out --wrap 'echo o1; echo e1 >&2'
sbatch -o null -e /dev/null --wrap 'echo o1; echo e1 >&2'
settle

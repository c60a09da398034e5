# The mask of who submits is the script's, and its steps'.
printf '#!/bin/bash\numask; srun bash -c umask; echo ${SLURM_UMASK:-unset}; touch made_$1; stat -c %%a made_$1; umask 007; srun bash -c umask\n' > j.sh
for m in 022 027 077 002; do (umask $m; sbatch -W -o o$m j.sh $m > /dev/null); cat o$m; stat -c %a o$m; done

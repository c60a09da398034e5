# Patterns of file names, in jobs and in arrays.
mkdir o; cd o
for p in '%j' 'j%j' '%5j' '%J' '%x' '%u' '%A' '%a' '%A_%a' '%%' '%s' '%t' '%n' 'a%qb' '%' 'x%5x' '%05j' '%3u' 'plain'; do
  sbatch -W -J nm -o "p-$p" --wrap=true > /dev/null; ls | sed -E 's/1[0-9]{3}/N/g'; rm -f *
done
for p in '%A_%a' '%a' '%3a' '%j' '%x.%A.%a'; do sbatch -W -J nm -a 2,11 -o "p-$p" --wrap=true > /dev/null; ls | sed -E 's/1[0-9]{3}/N/g'; rm -f *; done
sbatch -W -a 3 --wrap=true > /dev/null; ls | sed -E 's/1[0-9]{3}/N/g'

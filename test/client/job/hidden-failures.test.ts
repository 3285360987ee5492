import { describe, expect, it } from '@jest/globals'
import { hiddenFailures, strictnessOf } from '../../../client/job/hidden-failures'

const STRICT = 'bash -eo pipefail'
const found = (commands: string, shell = STRICT): string =>
  hiddenFailures(commands, strictnessOf(shell)).join('; ')

/** Forms that hide a failure of the training, and what names them. */
const HIDING: readonly [commands: string, words: string, shell?: string][] = [
  ['python train.py || true', '`|| true`'],
  ['python3 -u train.py --lr 3 2>&1 | tee log || :', '`|| true`'],
  ['CUDA_VISIBLE_DEVICES=0 torchrun --nproc 2 train.py || echo failed', '`|| true`'],
  ['./run.sh || exit 0', '`|| true`'],
  ['set +e\npython train.py\necho done', '`set -e`'],
  ['python train.py\necho done', '`set -e`', 'bash'],
  ['python train.py; cp -r out /mnt', '`set -e`', 'sh'],
  ["sh -c 'python train.py; echo done'", '`set -e`'],
  ['bash -lc "python train.py && echo ok; date"', '`&&`'],
  ["bash -c 'python train.py | tee log'", 'pipefail'],
  ['python train.py | head -100', 'pipefail', 'bash -e'],
  ['if ! python train.py; then echo failed; fi', '`if`'],
  ['until python train.py; do sleep 1; done', '`if`'],
  ['! python train.py', '`!`'],
  ['python a.py &\npython b.py', '`wait "$pid"`'],
  ['python a.py & python b.py & wait', '`wait "$pid"`'],
  [
    'for i in 0 1; do\n  CUDA_VISIBLE_DEVICES=$i python a.py --fold $i > $i.log 2>&1 &\ndone\nwait',
    '`wait "$pid"`',
  ],
  ['echo "best: $(python best.py)"', '`$(...)`'],
  ['export BEST=$(python best.py)\npython train.py $BEST', '`$(...)`'],
  ['echo `python best.py`', '`$(...)`'],
  ['python a.py && python b.py\npython c.py', '`&&`'],
  ["trap 'rm -rf /tmp/x; exit 0' EXIT\npython train.py", '`exit 0`'],
  ['set +o pipefail\npython train.py | tail -1', 'pipefail'],
  ['make all \\\n  || true', '`|| true`'],
]

/** Forms that hide none, or only of a command whose failure does not matter. */
const HARMLESS: readonly [commands: string, shell?: string][] = [
  ['python train.py'],
  ['mkdir data || true\nrm -f *.log || :\npython train.py'],
  ['nvidia-smi || true; python3 train.py'],
  ['python train.py 2>&1 | tee log'],
  ['python train.py &> log'],
  ['python train.py || exit 3'],
  ['python train.py || { echo failed; exit 1; }'],
  ['set +e\npython train.py\ncode=$?\ncp -r out /mnt\nexit $code'],
  ['if [ -e last.pt ]; then python train.py --resume; else python train.py; fi'],
  ['if ! python train.py; then echo failed; exit 1; fi'],
  ['python a.py & a=$!\npython b.py & b=$!\nwait $a\nwait $b'],
  ['python train.py &'],
  ['best=$(python best.py)\npython train.py --best "$best"'],
  ['cd code && python train.py'],
  ['python train.py && echo done'],
  ['set -e\npython a.py\npython b.py', 'bash'],
  ['python train.py', 'bash'],
  ['cd code\npython train.py', 'sh'],
  ['python train.py --note "a || true; b & c" # || true'],
  ["python -c 'import a; print(a) or true'\npython train.py"],
  ["bash -ec 'python a.py; python b.py'"],
  ['python - <<EOF\nx = 1 or true\nEOF'],
  ['python train.py --url http://a/b?c=d\\&e=f'],
  ["trap 'kill $child' TERM\npython train.py"],
  [''],
]

describe('commands that hide a failure', () => {
  it.each(HIDING)('are named in %j with %s', (...[commands, words, shell]) => {
    expect(found(commands, shell)).toContain(words)
  })

  it.each(HARMLESS)('are not seen in %j', (...[commands, shell]) => {
    expect(found(commands, shell)).toBe('')
  })
})

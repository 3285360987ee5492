import { describe, expect, it } from '@jest/globals'
import { shellWarnings } from '../../../client/job/shell-warnings'
import { SPEC } from '../world'

const warned = (changes: Partial<typeof SPEC>): string => shellWarnings({ ...SPEC, ...changes }).join()

describe('a command that its shell may misread', () => {
  it.each([
    ['if [[ $A = 1 ]]; then python3 a.py; fi', '[[ ]]'],
    ['source venv/bin/activate\npython3 a.py', 'source'],
    ['files=(a b)\npython3 a.py', 'an array'],
    ['diff <(sort a) <(sort b)', '<( )'],
    ['python3 a.py &> log', '&>'],
    ['echo ${NAME/a/b}', '${x[...]} or ${x/...}'],
    ['set -o pipefail\npython3 a.py | tee log', 'pipefail'],
    ['set -euo pipefail', 'pipefail'],
  ])('has a warning with shell: sh, such as %j', (run, what) => {
    expect(warned({ run, shell: 'sh -e' })).toContain(`The commands use ${what}, which only bash understands`)
    expect(warned({ run, image: 'alpine:3' })).toContain(`use ${what}: the image alpine:3 must have bash`)
    expect(warned({ run })).toBe('')
    expect(warned({ run, shell: 'bash -e' })).toBe('')
  })

  it.each([
    'python3 a.py --pattern "[[ x ]]" # source of it',
    "python3 -c 'a=(1, 2)'",
    '[ -e a ] && python3 a.py || exit 3',
    'python3 a.py 2>&1 &',
    'echo ${NAME:-a/b}',
  ])('has none in %j', (run) => {
    expect(warned({ run, shell: 'sh' })).toBe('')
    expect(warned({ run, image: 'alpine:3' })).toBe('')
  })

  it('has one for a pipe in an image, which may have no bash', () => {
    const pipe = { run: 'python3 a.py 2>&1 | tee log' }
    expect(warned({ ...pipe, image: 'alpine:3' })).toContain('only its last part decides')
    expect(warned(pipe)).toBe('')
  })
})

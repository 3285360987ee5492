import { describe, expect, it } from '@jest/globals'
import { checkJobSpec } from '../../intake/job-spec'
import { formatProblem } from '../../intake/problem'

const MINIMAL = { name: 'a', run: 'true' }

function complaints(value: unknown): string[] {
  const result = checkJobSpec(value)
  return 'problems' in result ? result.problems.map(formatProblem) : []
}

describe('checkJobSpec', () => {
  it('gives a spec that somebody wrote by hand what it left out', () => {
    expect(checkJobSpec(MINIMAL)).toEqual({
      spec: {
        name: 'a',
        run: 'true',
        inputs: [],
        resources: {},
        isInterruptible: false,
        checkpoint: {},
        backends: [],
        optimize: 'cost',
        retries: { failures: 0, interruptions: 100 },
        env: {},
        secrets: [],
        outputs: [],
      },
    })
  })

  it('says nothing of a deadline that has passed: the job ends at it', () => {
    expect(complaints({ ...MINIMAL, deadlineAtMs: 5 })).toEqual([])
  })

  it.each([
    [undefined, 'is missing. Correct the input of the workflow.'],
    ['run: x', 'must be a mapping of names to values, but is "run: x". Correct the input of the workflow.'],
    [{ run: 'x' }, 'name is missing. Correct the input of the workflow.'],
    [{ ...MINIMAL, interruptible: true }, 'interruptible is not a field. Did you mean isInterruptible?'],
    [{ ...MINIMAL, gpus: 1 }, 'gpus is not a field. Write it as resources.gpus.'],
    [
      { ...MINIMAL, deadlineAtMs: 1.5 },
      'deadlineAtMs must be a whole number, but is 1.5. Correct the input of the workflow.',
    ],
    [
      { ...MINIMAL, budgetMicroUsd: 0 },
      'budgetMicroUsd must be at least 1, but is 0. Correct the input of the workflow.',
    ],
    [
      { ...MINIMAL, retries: { failures: -1 } },
      'retries.failures must be at least 0, but is -1. Correct the input of the workflow.',
    ],
    [
      { ...MINIMAL, resources: { gpus: 4 } },
      'resources.gpus must be a mapping of names to values, but is 4. Correct the input of the workflow.',
    ],
    [
      { ...MINIMAL, resources: { gpus: { min: 4, max: 2 } } },
      'resources.gpus has its bounds in the wrong order. Correct the input of the workflow.',
    ],
    [
      { ...MINIMAL, backends: [{ backend: 'local', capacityType: 'cheap' }] },
      'backends[0].capacityType must be one of spot, on-demand, reserved, but is "cheap". Correct the input of the workflow.',
    ],
    [{ ...MINIMAL, inputs: [{ source: 'x', path: 'y' }] }, /^inputs\[0\]\.source "x" starts with none of/],
    [{ ...MINIMAL, outputs: ['../x'] }, /^outputs\[0\] "..\/x" is not inside/],
    [
      { ...MINIMAL, secrets: ['A'], env: { A: 'x' } },
      'secrets[0] names A, which is also under env. Remove one of the two.',
    ],
    [
      { ...MINIMAL, secrets: ['constructor', 'constructor'] },
      'secrets[1] names constructor a second time. Remove it.',
    ],
    [
      { ...MINIMAL, resources: { gpus: { max: 0 }, accelerators: ['H100'] } },
      'resources.gpus is 0, but an accelerator is requested. Remove one of the two.',
    ],
  ])('refuses %j', (value, complaint) => {
    expect(complaints(value)).toEqual([
      typeof complaint === 'string' ? complaint : expect.stringMatching(complaint),
    ])
  })

  it('counts the bytes of all of it', () => {
    const env = { A: 'ü'.repeat(16_000), B: 'ü'.repeat(16_000) }
    expect(complaints({ ...MINIMAL, env })).toEqual([])
    expect(complaints({ ...MINIMAL, env: { ...env, C: 'ü'.repeat(1_000) } })).toEqual([
      expect.stringMatching(
        /^the job has \d+ bytes \(maximum 65536\)\. Put long commands and values into files/,
      ),
    ])
  })

  it('tells all that is wrong', () => {
    expect(complaints({ name: 'A', run: '', optimize: 5 })).toHaveLength(3)
  })
})

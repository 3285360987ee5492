import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { FakeCheckout, INSTALL_GRAMMAR, type Outcome } from './fake-checkout'

let checkout: FakeCheckout

beforeEach(() => {
  checkout = new FakeCheckout()
  checkout.npm(`rm -rf node_modules
    ${INSTALL_GRAMMAR}
    mkdir -p node_modules/typescript-7/bin node_modules/prettier/bin node_modules/jest/bin node_modules/vitepress/bin node_modules/knip/bin
    cp tsc.js node_modules/typescript-7/bin/tsc
    cp prettier.js node_modules/prettier/bin/prettier.cjs
    cp vitepress.js node_modules/vitepress/bin/vitepress.js
    cp knip.js node_modules/knip/bin/knip.js
    cp jest.js node_modules/jest/bin/jest.js
    cp installed.json node_modules/.package-lock.json`)
  checkout.write('tools/lint.mjs', '')
  checkout.write('prettier.js', '')
  checkout.write('vitepress.js', '')
  checkout.write('knip.js', '')
  checkout.write('tools/lint-prose.mjs', '')
  checkout.write('tools/lint-patterns.mjs', '')
  checkout.write('tools/expected-skips.json', '{"test/quick.test.ts": "no GPU"}')
  jest({ numPassedTests: 5 })
})

afterEach(() => {
  checkout.remove()
})

const NOTHING_RAN = { numPassedTests: 0, numFailedTests: 0, numRuntimeErrorTestSuites: 0, testResults: [] }

/** A Jest that writes these results, after one line for people, and ends with the exit code. */
function jest(results: object, code = 0): void {
  const all = JSON.stringify({ ...NOTHING_RAN, ...results })
  checkout.write(
    'jest.js',
    `const file = process.argv[process.argv.indexOf('--outputFile') + 1]
     require('node:fs').writeFileSync(file, ${JSON.stringify(all)})
     console.error('jest ran')
     process.exitCode = ${code}`,
  )
}

async function run(...args: string[]): Promise<Outcome & { last: string }> {
  const outcome = await checkout.node('tools/test.mjs', ...args)
  return { ...outcome, last: outcome.stdout.trimEnd().split('\n').at(-1)! }
}

describe('npm test', () => {
  it('counts each check as one, and every test', async () => {
    const { code, last, stderr } = await run()
    expect(last).toBe('14 passed, 0 failed, 0 skipped')
    expect(code).toBe(0)
    expect(stderr).toContain('jest ran')
  })

  it('names the slowest files and each skipped test', async () => {
    const file = (name: string, seconds: number, tests: object[]) => ({
      name: join(checkout.folder, 'test', name),
      startTime: 0,
      endTime: seconds * 1_000,
      assertionResults: tests,
    })
    jest({
      numPassedTests: 2,
      testResults: [
        file('quick.test.ts', 1, [{ status: 'pending', fullName: 'a GPU runs the demo' }]),
        file('slow.test.ts', 61.25, [{ status: 'passed', fullName: 'a job ends' }]),
      ],
    })
    const { last, stdout } = await run()
    expect(last).toBe('11 passed, 0 failed, 1 skipped')
    expect(stdout).toContain('61.3 s  test/slow.test.ts\n     1.0 s  test/quick.test.ts\n')
    expect(stdout).toContain('Skipped:\n  no GPU: 1 of test/quick.test.ts\n')
  })

  it('fails on a skip that tools/expected-skips.json does not name', async () => {
    checkout.write('tools/expected-skips.json', '{"test/o*: * runs": "no GPU"}')
    const file = (name: string, fullName: string) => ({
      name: join(checkout.folder, 'test', name),
      startTime: 0,
      endTime: 1_000,
      assertionResults: [{ status: 'pending', fullName }],
    })
    const testResults = ['one', 'two'].map((name) => file(`${name}.test.ts`, 'a GPU runs the demo'))
    jest({ numPassedTests: 2, testResults })
    const { code, last, stdout } = await run()
    expect([code, last]).toEqual([1, '11 passed, 1 failed, 2 skipped'])
    expect(stdout).toContain('no GPU: 1 of test/one.test.ts\n  no known reason: 1 of test/two.test.ts\n')
    expect(stdout).toContain('does not name it, which fails:\n  test/two.test.ts: a GPU runs the demo\n')
  })

  it.each([
    ['a selection of the tests', [], '1'],
    ['every test with --all', ['--all'], ''],
  ])('runs %s', async (_what, args, selection) => {
    checkout.write(
      'tools/lint.mjs',
      'process.exitCode = 1; console.log(`[${process.env.CRUCIBLE_TEST_SELECTION}]`)',
    )
    expect((await run(...args)).stdout).toContain(`[${selection}]`)
  })

  it('repeats a check only after a file has changed that it reads', async () => {
    checkout.write('docs/faq.md', '# A page')
    const kept = async (): Promise<string[]> => {
      const { stdout } = await run()
      return [...stdout.matchAll(/^✓ (.+) \(nothing that it reads has changed/gm)].map(([, name]) => name!)
    }
    expect(await kept()).toEqual([])
    expect((await kept()).sort()).toEqual([
      'code only for tests',
      'docs site',
      'expressions',
      'format',
      'lint',
      'prose',
      'types',
      'types without Node',
      'unused code',
    ])
    checkout.write('core/time.ts', '// another time')
    expect(await kept()).toEqual(['docs site'])
    checkout.write('docs/faq.md', '# Another page')
    expect((await kept()).sort()).toEqual([
      'code only for tests',
      'expressions',
      'lint',
      'types',
      'types without Node',
      'unused code',
    ])
  })

  it('repeats a suite of few files only after one of them has changed, and counts it nevertheless', async () => {
    const name = join(checkout.folder, 'packages/small-cloud/test/clock.test.ts')
    const tests = ['passed', 'pending'].map((status) => ({ status, fullName: `a clock is ${status}` }))
    checkout.write('tools/expected-skips.json', '{"packages/small-cloud/test/clock.test.ts": "no GPU"}')
    checkout.write('packages/small-cloud/src/clock.ts', '// a clock')
    const runs = async (status: string, ...args: string[]): Promise<[boolean, string]> => {
      jest({
        numPassedTests: 1,
        testResults: [{ name, status, startTime: 0, endTime: 1, assertionResults: tests }],
      })
      const script = `${readFileSync(checkout.path('jest.js'), 'utf8')}
        const unchanged = JSON.parse(process.env.CRUCIBLE_TESTS_UNCHANGED)
        if (unchanged.some((pattern) => new RegExp(pattern).test('packages/small-cloud/test/clock.test.ts')))
          require('node:fs').writeFileSync(file, ${JSON.stringify(JSON.stringify(NOTHING_RAN))})
        else console.error('the suite ran')`
      // The first run copies the one to the other.
      for (const path of ['jest.js', 'node_modules/jest/bin/jest.js']) checkout.write(path, script)
      const { stderr, stdout, last } = await run(...args)
      if (last.endsWith('1 skipped')) expect(stdout).toContain('no GPU: 1 of packages/small-cloud/test/clock')
      return [stderr.includes('the suite ran'), last]
    }
    expect(await runs('failed')).toEqual([true, '10 passed, 0 failed, 1 skipped'])
    expect(await runs('passed')).toEqual([true, '10 passed, 0 failed, 1 skipped'])
    expect(await runs('passed')).toEqual([false, '10 passed, 0 failed, 1 skipped'])
    checkout.write('core/time.ts', '// another time')
    expect(await runs('passed')).toEqual([false, '10 passed, 0 failed, 1 skipped'])
    expect(await runs('passed', '--all')).toEqual([true, '10 passed, 0 failed, 1 skipped'])
    expect(await runs('passed')).toEqual([true, '10 passed, 0 failed, 1 skipped'])
    expect(await runs('passed')).toEqual([false, '10 passed, 0 failed, 1 skipped'])
    checkout.write('packages/small-cloud/src/clock.ts', '// another clock')
    expect(await runs('failed')).toEqual([true, '10 passed, 0 failed, 1 skipped'])
    expect(await runs('passed')).toEqual([true, '10 passed, 0 failed, 1 skipped'])
  })

  it('shows the output of the linter, and continues', async () => {
    checkout.write('tools/lint.mjs', 'console.log("line 7: no"); process.exitCode = 1')
    const { code, last, stdout } = await run()
    expect(last).toBe('13 passed, 1 failed, 0 skipped')
    expect(code).toBe(1)
    expect(stdout).toContain('line 7: no')
  })

  it('counts tests that fail and files that do not load', async () => {
    jest({ numPassedTests: 3, numFailedTests: 2, numRuntimeErrorTestSuites: 1 }, 1)
    expect(await run()).toMatchObject({ code: 1, last: '12 passed, 3 failed, 0 skipped' })
  })

  it.each([
    ['dies without results', 'process.exitCode = 1'],
    ['fails though no test did', undefined],
  ])('fails when Jest %s', async (_what, script) => {
    jest({ numPassedTests: 3 }, 1)
    if (script !== undefined) checkout.write('jest.js', script)
    const { code, last } = await run()
    expect(code).toBe(1)
    expect(last).toMatch(/^\d+ passed, 1 failed, 0 skipped$/)
  })

  it('ends with the line when the set-up already fails', async () => {
    checkout.npm('exit 1')
    expect(await run()).toMatchObject({ code: 1, last: '0 passed, 1 failed, 0 skipped' })
  })
})

describe('.ci/run', () => {
  it.each([
    ['passes', 'echo "12 passed, 0 failed, 3 skipped"', 0, '12 passed, 0 failed'],
    [
      'fails, with words of npm after the line',
      'echo "11 passed, 1 failed"; echo "npm error"; exit 1',
      1,
      '11 passed, 1 failed',
    ],
    ['dies before the line', 'echo "out of memory"; exit 134', 134, '0 passed, 1 failed'],
    ['passes and then dies', 'echo "12 passed, 0 failed"; exit 9', 9, '12 passed, 1 failed'],
    [
      'prints other numbers too',
      'echo "120 passed, 0 failed"; echo "x: 3 passed, 0 failed"',
      0,
      '120 passed, 0 failed',
    ],
  ])('ends with the result when npm test %s', async (...[, script, code, last]) => {
    checkout.npm(script)
    const outcome = await checkout.run('bash', ['.ci/run'])
    expect(outcome.code).toBe(code)
    expect(outcome.stdout.trimEnd().split('\n').at(-1)).toBe(last)
    expect(checkout.calls()).toEqual(['npm test'])
  })
})

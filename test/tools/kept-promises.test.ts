import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it, jest } from '@jest/globals'

jest.setTimeout(120_000)

const ROOT = join(__dirname, '..', '..')
const HEAD = "import { kept } from './forever'\ndeclare function work(): Promise<void>\n"

/** The rules that code breaks which stands in the place of a workflow's file. */
function brokenBy(code: string): (string | null)[] {
  const eslint = join(ROOT, 'node_modules', 'eslint', 'bin', 'eslint.js')
  const args = [eslint, '--stdin', '--stdin-filename', 'workflows/limits.ts', '--format', 'json']
  try {
    execFileSync(process.execPath, args, { cwd: ROOT, input: `${HEAD}${code}` })
    return []
  } catch (error) {
    const [report] = JSON.parse(String((error as { stdout: Buffer }).stdout)) as [
      { messages: { ruleId: string | null }[] },
    ]
    return report.messages.map(({ ruleId }) => ruleId)
  }
}

it('lint refuses a promise of workflow code that may reject before anything awaits it', () => {
  const lines = [
    'const unkept = work()',
    'await unkept',
    'void work()',
    'const well = kept(work())',
    'await well',
  ]
  const broken = brokenBy(['export async function f(): Promise<void> {', ...lines, '}'].join('\n'))
  expect(broken).toEqual(['crucible/kept-promises', '@typescript-eslint/no-floating-promises'])
})

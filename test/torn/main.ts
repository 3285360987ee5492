/** `npm run torn -- --help`. */
import { seedOptions } from '../kit/runs'
import { readOptions } from '../support/options'
import { runCases } from './run'

async function main(): Promise<void> {
  const values = readOptions({
    name: 'torn',
    about: 'Tears checkpoint uploads by the thousand, and says what was resumed from badly.',
    options: {
      ...seedOptions(10_000),
    },
  })
  if (values === undefined) return
  const { from: first, count } = values
  const beganMs = performance.now()
  const { bad, counts } = await runCases(first, count)
  for (const { seed, words } of bad)
    process.stdout.write(`seed ${seed}, again with: npm run torn -- --from ${seed} --count 1\n${words}\n`)
  for (const [what, times] of Object.entries(counts).sort())
    process.stdout.write(`${String(times).padStart(8)}  ${what}\n`)
  const seconds = ((performance.now() - beganMs) / 1_000).toFixed(0)
  process.stdout.write(`${count} cases in ${seconds} s: ${bad.length} bad resumes\n`)
  if (bad.length > 0) process.exitCode = 1
}

void main()

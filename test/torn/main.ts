/** `npm run torn -- [--from N] [--count N]`: torn uploads by the thousand. */
import { parseArgs } from 'node:util'
import { runCases } from './run'

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { from: { type: 'string', default: '1' }, count: { type: 'string', default: '10000' } },
  })
  const [first, count] = [Number(values.from), Number(values.count)]
  if (!(Number.isInteger(first) && Number.isInteger(count) && first >= 0 && count > 0))
    throw new Error('--from and --count are whole numbers, such as --from 1 --count 10000')
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

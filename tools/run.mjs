import { spawn } from 'node:child_process'

/** Runs a program to its end and returns its standard output; throws with the reason when it fails. Options as in `spawn`. */
export async function run(program, args, options) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options })
  const [output, all] = [[], []]
  child.stdout.setEncoding('utf8').on('data', (text) => output.push(text) && all.push(text))
  child.stderr.setEncoding('utf8').on('data', (text) => all.push(text))
  const code = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve))
  if (code === 0) return output.join('')
  const reason = /^Error: .*/m.exec(all.join(''))?.[0] ?? all.join('').trim().split('\n').at(-1)
  throw new Error(reason || `${program} ended with exit code ${code}`)
}

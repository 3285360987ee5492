import { execFile } from 'node:child_process'

const BUFFER_MAX_BYTES = 64 * 1024 * 1024

/** Runs a program to its end without blocking this process, and returns its standard output; throws with its errors if it fails. */
export function exec(
  program: string,
  args: readonly string[],
  options: { cwd: string; env: NodeJS.ProcessEnv },
): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, [...args], { ...options, maxBuffer: BUFFER_MAX_BYTES }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new Error(`${program} failed: ${stderr.slice(-4000)}${stdout.slice(-4000)}`))
    })
  })
}

import { describe, expect, it } from '@jest/globals'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { withFolder } from '../../kit/folder'

const ROOT = join(__dirname, '..', '..', '..')

describe('a command that waits for a file that never answers', () => {
  it('ends, with its exit code where Node allows it', () =>
    withFolder('ends', async (folder) => {
      const pipe = join(folder, 'pipe')
      execFileSync('mkfifo', [pipe])
      const script = `
        void require('node:fs').promises.readFile(${JSON.stringify(pipe)})
        setTimeout(() => require('./cli/kit/process.ts').endWith(7), 100)`
      const loader = join(ROOT, 'test', 'support', 'typescript.mjs')
      const child = spawn(process.execPath, ['--import', loader, '-e', script], {
        cwd: ROOT,
        stdio: 'ignore',
      })
      const [code, signal] = await once(child, 'exit')
      expect([code, signal]).toEqual('execve' in process ? [7, null] : [null, 'SIGKILL'])
    }))
})

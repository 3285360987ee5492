import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { it } from '@jest/globals'
import { beating, pause } from '../../activities/heartbeat'
import { until } from '../support/until'
import { surroundings } from './place'

setFlagsFromString('--expose_gc')
const collectGarbage = runInNewContext('gc') as () => void

it('the end of an activity’s time is not forgotten when memory is tidied up', async () => {
  const env = surroundings({ startToCloseTimeoutMs: 600 })
  await env.run(() =>
    beating(async (signal) => {
      for (let times = 0; times < 3; times++) {
        // Not that signal: waiting on it would keep it.
        await pause(50, new AbortController().signal)
        collectGarbage()
      }
      await until(() => signal.aborted)
    }),
  )
})

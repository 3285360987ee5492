/** Runs in the sandbox of a workflow: ends its waits once a driven clock has come so far, which a signal says. */
import {
  CancellationScope,
  defineSignal,
  setHandler,
  type WorkflowInterceptorsFactory,
} from '@temporalio/workflow'

/** A wait of the workflow. Its own timer in the server is of real time, and is far too late. */
interface Wait {
  dueAtMs: number
  isDue: boolean
  scope: CancellationScope
}

const wake = defineSignal('wake')

export const interceptors: WorkflowInterceptorsFactory = () => {
  const waits = new Set<Wait>()
  let isListening = false
  const listen = (): void => {
    isListening = true
    setHandler(wake, () => {
      for (const wait of [...waits].filter(({ dueAtMs }) => dueAtMs <= Date.now())) {
        wait.isDue = true
        wait.scope.cancel()
      }
    })
  }
  return {
    outbound: [
      {
        async startTimer(input, next) {
          if (!isListening) listen()
          const scope = new CancellationScope()
          const wait: Wait = { dueAtMs: Date.now() + input.durationMs, isDue: false, scope }
          waits.add(wait)
          try {
            await scope.run(() => next(input))
          } catch (error) {
            if (!wait.isDue) throw error
          } finally {
            waits.delete(wait)
          }
        },
      },
    ],
  }
}

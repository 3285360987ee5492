import { Argument, type Command } from 'commander'
import { completionScript, SHELLS, type Shell } from '../../kit/completion'
import { examples } from '../../examples'
import { addShared } from '../options'
import type { Session } from '../session'

export function define(command: Command, session: Session): void {
  addShared(command.addArgument(new Argument('<shell>', 'for which shell').choices(SHELLS)))
    .addHelpText(
      'after',
      examples(
        ['eval "$(truffle completion bash)"', 'in ~/.bashrc'],
        ['eval "$(truffle completion zsh)"', 'in ~/.zshrc, after compinit'],
        ['truffle completion fish > ~/.config/fish/completions/truffle.fish', 'once'],
      ),
    )
    .action((shell: Shell) => {
      const script = completionScript(session.makeProgram!(), shell)
      session.answer({
        command: 'completion',
        results: [{ shell, script }],
        columns: ['shell', 'script'],
        unanswered: [],
        notes: [],
        show: (out) => out.block(script),
      })
    })
}

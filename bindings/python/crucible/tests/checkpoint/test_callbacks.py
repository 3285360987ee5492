import os
import signal
import types
import unittest

from fakes import Callback, JobTest, module


def named(**values):
    return types.SimpleNamespace(**values)


class CallbackTest(JobTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))

    def assert_stops(self, action):
        with self.assertRaises(SystemExit) as stopped:
            action()
        self.assertEqual(stopped.exception.code, 143)


class HuggingFaceTest(CallbackTest):
    def setUp(self):
        super().setUp()
        self.helpers = self.helper("huggingface", transformers=module("transformers", TrainerCallback=Callback))
        self.callback = self.helpers.CrucibleCallback(every_seconds=1000)
        self.args = named(output_dir=self.checkpoints)
        self.state = named(global_step=0, max_steps=10, is_world_process_zero=True)
        self.control = named(should_save=False, should_training_stop=False)
        self.signal("on_train_begin")

    def signal(self, name, **more):
        getattr(self.callback, name)(self.args, self.state, self.control, **more)

    def at(self, step):
        self.state.global_step = step
        self.signal("on_step_end")

    def test_reports_progress_with_the_newest_loss(self):
        self.signal("on_log", logs={"loss": 0.5})
        self.signal("on_log", logs={"eval_loss": 9.0})
        self.at(3)
        self.assertEqual(self.told("progress.json"), {"step": 3, "total": 10, "loss": 0.5})
        self.assertFalse(self.control.should_save)

    def test_asks_the_trainer_to_save_and_to_stop(self):
        self.ask("save")
        self.at(1)
        self.assertEqual((self.control.should_save, self.control.should_training_stop), (True, False))
        self.signal("on_train_end")
        self.ask("stop")
        self.at(2)
        self.assertTrue(self.control.should_training_stop)
        self.assert_stops(lambda: self.signal("on_train_end"))

    def test_declares_what_the_trainer_has_saved_in_the_folder_that_is_kept(self):
        os.makedirs(os.path.join(self.checkpoints, "checkpoint-4"))
        self.state.global_step = 4
        self.signal("on_save")
        self.assertEqual(self.declared(), [(4, "checkpoint-4")])
        self.args.output_dir = os.path.join(self.folder, "elsewhere")
        self.signal("on_save")
        self.assertEqual(len(self.declared()), 1)

    def test_resumes_from_the_restored_folder(self):
        self.assertIsNone(self.helpers.last_checkpoint())
        for name in ("checkpoint-9", "checkpoint-10", "runs"):
            os.makedirs(os.path.join(self.checkpoints, name))
        newest = os.path.join(self.checkpoints, "checkpoint-10")
        for restored in (newest, self.checkpoints):
            os.environ["CRUCIBLE_RESUME_FROM"] = restored
            self.assertEqual(self.helpers.last_checkpoint(), newest)


class LightningTest(CallbackTest):
    def setUp(self):
        super().setUp()
        inner = module("lightning.pytorch.callbacks", Callback=Callback)
        self.helpers = self.helper(
            "lightning",
            lightning=module("lightning"),
            lightning__pytorch=module("lightning.pytorch"),
            lightning__pytorch__callbacks=inner,
        )
        self.callback = self.helpers.CrucibleCheckpoint(every_steps=3)
        self.trainer = named(global_step=0, world_size=1, is_global_zero=True, estimated_stepping_batches=10)
        self.trainer.callback_metrics = {"train_loss": 0.25}
        self.trainer.strategy = named(barrier=lambda _: None)
        self.trainer.save_checkpoint = self.write
        self.callback.on_train_start(self.trainer, None)

    def write(self, path):
        with open(path, "w") as file:
            file.write("checkpoint")

    def at(self, step):
        self.trainer.global_step = step
        self.callback.on_train_batch_end(self.trainer, None, None, None, 0)

    def test_saves_whole_checkpoints_in_time_and_reports_progress(self):
        for step in (1, 2, 3, 3, 4):
            self.at(step)
        self.assertEqual(self.declared(), [(3, "step-000000000003.ckpt")])
        self.assertEqual(self.told("progress.json")["total"], 10)
        self.assertEqual(self.told("progress.json")["loss"], 0.25)

    def test_saves_and_ends_the_program_after_a_notice(self):
        self.at(1)
        self.ask("stop")
        self.assert_stops(lambda: self.at(2))
        self.assertEqual(self.declared(), [(2, "step-000000000002.ckpt")])

    def test_leaves_the_end_open_where_there_is_none(self):
        self.trainer.estimated_stepping_batches = float("inf")
        self.at(1)
        self.assertIsNone(self.told("progress.json")["total"])

    def test_sets_the_random_states_when_the_training_begins(self):
        import random

        state = self.callback.state_dict()
        wanted = random.random()
        self.callback.load_state_dict(state)
        random.random()
        self.callback.on_train_start(self.trainer, None)
        self.assertEqual(random.random(), wanted)


class KerasTest(CallbackTest):
    def setUp(self):
        super().setUp()
        callbacks = module("keras.callbacks", Callback=Callback)
        self.helpers = self.helper("keras", keras=module("keras"), keras__callbacks=callbacks)
        self.model = named(built=True, variables=[], trainable_variables=[], loaded=None)
        self.model.optimizer = named(build=lambda _: None)
        self.model.save_weights = lambda path: open(path, "w").close()
        self.model.load_weights = lambda path: setattr(self.model, "loaded", path)

    def callback(self, **options):
        callback = self.helpers.CrucibleCallback(self.model, **options)
        callback.model, callback.params = self.model, {"steps": 4, "epochs": 3}
        callback.on_train_begin()
        return callback

    def test_saves_each_epoch_and_begins_with_the_next(self):
        callback = self.callback()
        self.assertEqual(callback.initial_epoch, 0)
        callback.on_epoch_begin(0)
        for batch in range(4):
            callback.on_train_batch_end(batch, {"loss": 0.5})
        self.assertEqual(self.declared(), [])
        callback.on_epoch_end(0)
        self.assertEqual(self.declared(), [(4, "step-000000000004")])
        os.environ["CRUCIBLE_RESUME_FROM"] = os.path.join(self.checkpoints, "step-000000000004")
        again = self.callback()
        self.assertEqual((again.initial_epoch, again.steps_done), (1, 4))
        self.assertEqual(os.path.basename(self.model.loaded), "model.weights.h5")

    def test_repeats_an_epoch_that_was_interrupted(self):
        callback = self.callback()
        callback.on_epoch_begin(1)
        callback.on_train_batch_end(0)
        self.ask("stop")
        self.assert_stops(lambda: callback.on_train_batch_end(1))
        self.withdraw("stop")
        os.environ["CRUCIBLE_RESUME_FROM"] = os.path.join(self.checkpoints, "step-000000000002")
        again = self.callback()
        self.assertEqual((again.initial_epoch, again.steps_done), (1, 2))
        again.on_epoch_begin(1)
        again.on_train_batch_end(0)
        # 3 done, 3 left of this epoch, and one epoch of 4.
        self.assertEqual(self.told("progress.json")["total"], 10)

    def test_refuses_a_model_that_cannot_be_restored(self):
        for built, optimizer in ((False, self.model.optimizer), (True, None)):
            self.model.built, self.model.optimizer = built, optimizer
            with self.assertRaisesRegex(ValueError, "compile and build"):
                self.callback()


if __name__ == "__main__":
    unittest.main()
